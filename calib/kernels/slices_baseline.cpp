#define TIDEGATE_ISA baseline
#define TIDEGATE_SLICES baseline_slices
#include "calib/kernels/slices.inc"
