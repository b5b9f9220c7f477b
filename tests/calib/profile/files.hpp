#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

/// A folder of its own for the profiles of a test, removed afterwards.
class Files {
 public:
  Files() {
    static int counter = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("tidegate_show_" + std::to_string(getpid()) + "_" + std::to_string(counter++));
    std::filesystem::create_directories(folder_);
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

 private:
  std::filesystem::path folder_;
};
