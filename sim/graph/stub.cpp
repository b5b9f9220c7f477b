#include "sim/graph/workload.hpp"
