#pragma once

#include "sim/search/pool.hpp"

/// What bounds say of a combination of crossed axes whatever its refinements are.
namespace tidegate {

/// No refinement fits, by what stands in memory. False says nothing.
bool cannot_fit(CandidatePool& pool, const Space& space, const Picks& crossed);

/// Refinements with which it may fit, as close to how it was as that allows.
Picks leaner(CandidatePool& pool, const Space& space, const Picks& crossed);

/// The least bound of all its refinements that may fit, or the first that is below `enough`. Of
/// options that buy speed with memory the fastest counts with which any refinement may fit.
Seconds least_bound(CandidatePool& pool, const Space& space, const Picks& crossed, Seconds enough);

}  // namespace tidegate
