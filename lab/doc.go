// Package lab is a module of its own for what tests, benchmarks and the demo
// push onto nodes, so that swdt itself never depends on it:
//
//   - service: a small Windows service that plays kubelet (or another component)
//     and misbehaves on demand.
//   - tiny: the smallest such service.
//   - pad: makes an executable as large as one wants.
//   - containerd/VERSION: modules that build the real containerd.exe.
//   - pods: a module with what runs pods under Wine, for those: a shim, a
//     snapshotter, a network plugin, images.
//   - kubelet: a module that builds the real kubelet.exe.
//   - kubernetes: a module that builds a control plane for Linux, which
//     internal/controlplane of swdt's module runs.
//
// build.sh builds all of it into a cache outside of git.
package lab
