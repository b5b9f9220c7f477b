#pragma once

#include <string>
#include <vector>

/// A library opened while running (dlopen), so that the program starts, fast, on machines without
/// it. A library that is not there is no error: why_absent() says what was tried.
namespace tidegate::cuda {

class SharedLibrary {
 public:
  /// Opens the first of `names` that the loader finds.
  explicit SharedLibrary(const std::vector<std::string>& names);
  ~SharedLibrary();
  SharedLibrary(SharedLibrary&& other) noexcept;
  SharedLibrary& operator=(SharedLibrary&& other) noexcept;

  /// Empty while every function asked for was there.
  const std::string& why_absent() const { return why_absent_; }
  bool is_usable() const { return why_absent_.empty(); }

  /// Sets `function` to the first of `symbols` that exists; without any, the library counts as
  /// absent from here on.
  template <class Function>
  void find(Function*& function, const std::vector<const char*>& symbols) {
    function = reinterpret_cast<Function*>(address(symbols));
  }
  /// The same for what may be missing: nullptr then.
  template <class Function>
  void find_optional(Function*& function, const char* symbol) {
    function = reinterpret_cast<Function*>(address_of(symbol));
  }

 private:
  void* address(const std::vector<const char*>& symbols);
  void* address_of(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_, why_absent_;
};

}  // namespace tidegate::cuda
