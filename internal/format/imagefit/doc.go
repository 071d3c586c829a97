// Package imagefit decides whether an image fits a Windows node: which manifest of an image's index the node's containerd
// takes, and whether Windows runs it. It contacts nothing.
//
//   - build.go: versions of Windows, and the versions that run together
//   - release.go: the releases of Windows with base images, and their end of support
//   - platform.go: the platform of a manifest, as containerd compares it
//   - matcher.go: the choice of each generation of containerd
package imagefit
