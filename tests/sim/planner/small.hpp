#pragma once

#include <string>

/// A catalog of desks with a card and one or two drives, whose parts a test replaces.
namespace tidegate::test {

inline std::string small_catalog() {
  return R"(kind: catalog
name: desks
date: 2026-11-30
currency: EUR
example: true
terms:
  years: {value: 4, assumed: a}
  utilization: {value: 1, assumed: a}
  energy: {value: 0.25, assumed: a}
  pue: {value: 1, assumed: a}
gpus:
  card:
    component: rtx_4090_24gb
    lanes: 16
    price: {value: 2000, assumed: a}
    idle: {value: 20 W, assumed: a}
    busy: {value: 450 W, assumed: a}
drives:
  stick:
    component: 990_pro_2tb
    lanes: 4
    price: {value: 150, assumed: a}
    replacement: {value: 200, assumed: a}
    idle: {value: 1 W, assumed: a}
    busy: {value: 8 W, assumed: a}
hosts:
  desk:
    profile: workstation_rtx4090
    gpus: 2
    drives: 4
    lanes: 24
    price: {value: 1000, assumed: a}
    idle: {value: 80 W, assumed: a}
    busy: {value: 0.3 kW, assumed: a}
    memory:
      most: 128 GiB
      price: {value: 5, assumed: a}
      idle: {value: 0.05 W, assumed: a}
      busy: {value: 0.15 W, assumed: a}
machines:
  - {host: desk, gpu: card, gpus: 1, drive: stick, drives: [1, 2], memory: 64 GiB}
)";
}

}  // namespace tidegate::test
