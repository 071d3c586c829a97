// Package lab is a separate module with the programs that tests, benchmarks and the
// demo push to nodes, so that swdt itself never depends on them:
//
//   - service: a small Windows service that acts as kubelet (or another component)
//     and misbehaves on demand.
//   - tiny: the smallest such service.
//   - pad: pads an executable to a size.
//   - containerd/VERSION: modules that build the real containerd.exe.
//   - pods: a module with the programs that run their pods under Wine: a shim, a
//     snapshotter, a network plugin, images.
//   - guest: makes the disk of a virtual machine that stands for Windows.
//   - kubelet: a module that builds the real kubelet.exe.
//   - kubernetes: a module that builds a control plane for Linux, which
//     internal/sandbox/controlplane of swdt's module runs.
//
// build.sh builds all of it into a cache outside of git.
package lab
