// Package beneath operates on files that cannot lead out of a root directory.
//
// A directory is resolved once, by the kernel, without symbolic links. Everything in it
// is then reached through its handle and a name, so that nothing that is moved or
// replaced meanwhile leads elsewhere. Only regular files with one link are opened, and
// opening never blocks.
//
// It must not know who may do what, nor HTTP.
package beneath
