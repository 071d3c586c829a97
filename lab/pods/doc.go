// Package pods is a separate module with the programs that the real containerd needs
// to run pods under Wine, which lacks Windows' own:
//
//   - shim: containerd-shim-lab-v1.exe, the runtime io.containerd.lab.v1.
//   - snapshotter: the files of images and containers.
//   - cni: a network plugin that answers.
//   - image: images of one program, served as a registry.
//   - burn: that program.
//   - pipe: named pipes that work under Wine.
//
// See the end-to-end tests (e2e/pods_test.go) for how they work together.
package pods
