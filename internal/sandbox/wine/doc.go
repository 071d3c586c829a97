// Package wine prepares Wine prefixes in which the real Windows programs of a
// node run on Linux: swdt-agent.exe, containerd.exe, their services.
//
// wineboot takes 8 s to create a prefix, so it runs once and creates a template in
// the user's cache. The template is named by a hash of its recipe (Wine's version,
// the shims in recipe/ built with mingw, recipe/node.reg) and copied for each use.
// Any number of processes may prepare prefixes at the same time.
//
// The package builds on every system and needs Wine to run. If Wine is missing,
// Prepare returns a *MissingError that names the programs to install.
package wine
