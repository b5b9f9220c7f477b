#include "calib/cuda/shim/shared_library.hpp"

#include <utility>

#include <dlfcn.h>

namespace tidegate::cuda {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    // Libraries that launch kernels do not survive being unloaded and loaded again.
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
  }
  why_absent_ = (names.empty() ? std::string("the library") : names.front()) + " is not installed";
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

SharedLibrary::SharedLibrary(SharedLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      name_(std::move(other.name_)),
      why_absent_(std::move(other.why_absent_)) {}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  std::swap(why_absent_, other.why_absent_);
  return *this;
}

void* SharedLibrary::address_of(const char* symbol) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

void* SharedLibrary::address(const std::vector<const char*>& symbols) {
  for (const char* symbol : symbols) {
    if (void* found = address_of(symbol)) return found;
  }
  if (handle_ != nullptr && why_absent_.empty()) {
    why_absent_ = name_ + " lacks " + symbols.front();
  }
  return nullptr;
}

}  // namespace tidegate::cuda
