# The git revision goes into every report and profile (provenance).
execute_process(
  COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --dirty --abbrev=10
  OUTPUT_VARIABLE TIDEGATE_REVISION
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT TIDEGATE_REVISION)
  set(TIDEGATE_REVISION unknown)
endif()
