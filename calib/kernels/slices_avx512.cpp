#define TIDEGATE_ISA avx512
#define TIDEGATE_SLICES avx512_slices
#include "calib/kernels/slices.inc"
