#include "sim/timeline/timeline.hpp"
