# Debian 12 and Debian 13 name some targets differently; the rest of the build sees one name.
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Boost REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(tidegate_yaml_cpp INTERFACE)
  target_link_libraries(tidegate_yaml_cpp INTERFACE yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS tidegate_yaml_cpp)
endif()
