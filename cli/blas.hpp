#pragma once

namespace tidegate {

/// A BLAS that does not know this CPU is slow by a factor; what mends it (cpu::blas_remedy) counts
/// at the start of a program only, so the program starts again with it. Returns when there is
/// nothing to mend, or nothing that helps.
void use_blas_well(char** argv);
/// The same with the arguments that this process was started with.
void use_blas_well();

}  // namespace tidegate
