#define TIDEGATE_ISA avx2
#define TIDEGATE_SLICES avx2_slices
#include "calib/kernels/slices.inc"
