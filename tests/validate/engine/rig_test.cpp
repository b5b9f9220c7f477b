// Plans of real policies on a paced rig: order, bytes, memory and faults.
#include "tests/catch.hpp"
