// Package imagecheck finds which manifest of an image each Windows node takes, whether its Windows runs it, and how much a pull
// fetches. It reads the manifests of images from their registries, or from mirrors, and no layers. A registry is trusted with
// nothing: what it sends is bounded and checked.
//
//   - registry.go: registries and their mirrors
//   - image.go: an image's index, manifests and configuration
//   - check.go: images on nodes
//   - findings.go: what is wrong, and what surprises
//   - report.go: the report and its texts
package imagecheck
