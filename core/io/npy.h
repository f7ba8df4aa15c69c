#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/io/zip.h"
#include "tessera/core/tensor.h"

/// numpy's array files. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
namespace tessera {

/// An .npy file (versions 1 to 3; either byte order; C and Fortran order) as a row-major tensor. dtypes: f2 f4 f8 i4 i8 as
/// they are, u1 and b1 as u8, i1 i2 u2 as i32, u4 u8 as i64.
/// Errors: IoError for other dtypes (object arrays would run code from the file and are never read), a shape that does not
/// fit the bytes.
Tensor load_npy(const std::string& path);

/// The same from memory; `where` starts every error text.
Tensor parse_npy(std::string_view bytes, const std::string& where);

/// Writes version 1, row-major; atomically. bf16 is an InvalidArgument error (numpy has no such dtype).
void save_npy(const std::string& path, const Tensor& tensor);

/// An .npz archive: members are read one at a time by name, so that those nobody asks for may be of any dtype.
class NpzFile {
 public:
  /// Errors: as `ZipFile`; a name that occurs twice.
  explicit NpzFile(const std::string& path);

  const std::string& path() const { return zip_.path(); }
  /// Names of the arrays, without ".npy", in file order.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const;
  /// Errors: there is no such array (the text lists those there are); as `load_npy`.
  Tensor read(std::string_view name) const;

 private:
  ZipFile zip_;
  std::vector<std::string> names_;
};

}  // namespace tessera
