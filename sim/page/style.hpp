#pragma once

namespace tidegate::page {

extern const char* const style;
extern const char* const script;

/// Colours of layers and boxes, by index; CSS variables that follow light and dark.
constexpr unsigned colors = 10;

}  // namespace tidegate::page
