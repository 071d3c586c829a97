// Package wine prepares Wine prefixes in which the real Windows programs of a
// node run on Linux: swdt-agent.exe, containerd.exe, their services.
//
// A prefix made by wineboot takes 8 s, so that it is made once: a template in
// the user's cache, named by a hash of its recipe (Wine's version, the shims in
// recipe/ built with mingw, recipe/node.reg), copied for each use. Any number of
// processes may prepare prefixes at the same time.
//
// The package builds everywhere and needs Wine where it is used; where Wine is
// missing, Prepare returns a *MissingError that says what to install.
package wine
