# Language, warnings and floating-point rules, carried by one interface target.
option(TIDEGATE_TESTS "build the tests" ON)
option(TIDEGATE_BENCH "build the benchmarks" OFF)
option(TIDEGATE_WERROR "warnings are errors" OFF)

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(TIDEGATE_CCACHE ccache)
if(TIDEGATE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TIDEGATE_CCACHE})
endif()

# CMAKE_CXX_STANDARD stays unset: CUDA would inherit it, and CMake 3.25.1 rejects C++20 there.
add_library(tidegate_options INTERFACE)
target_compile_features(tidegate_options INTERFACE cxx_std_20)
target_include_directories(tidegate_options INTERFACE ${PROJECT_SOURCE_DIR})
# -ffp-contract=off: the same input gives the same bytes on machines with and without fused
# multiply-add.
target_compile_options(
  tidegate_options
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wno-missing-field-initializers
            -Wno-restrict
            -ffp-contract=off>
            $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>
            $<$<AND:$<BOOL:${TIDEGATE_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
