// Package lab is a separate module with the programs that tests, benchmarks and the
// demo push to nodes, so that swdt itself never depends on them:
//
//   - service: a small Windows service that acts as kubelet (or another component)
//     and misbehaves on demand.
//   - tiny: the smallest Windows service.
//   - pad: pads an executable to a size.
//   - containerd/VERSION: modules that build the real containerd.exe.
//   - pods: a module with the programs with which containerd.exe runs pods under Wine: a
//     shim, a snapshotter, a network plugin, images.
//   - guest: makes the disk of a virtual machine that acts as a Windows machine.
//   - kubelet: a module that builds the real kubelet.exe.
//   - specs: a module with a small suite of Ginkgo that acts as Kubernetes' e2e.test;
//     tests build it themselves.
//   - agnhost: the module that builds agnhost, the program of the images of these tests, for Windows.
//   - e2etest/VERSION: modules that build e2e.test, with Kubernetes' own end-to-end tests.
//   - kubernetes: a module that builds a control plane for Linux, which
//     internal/sandbox/controlplane of swdt's module runs.
//
// build.sh builds all these programs into a cache outside of git.
package lab
