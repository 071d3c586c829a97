// Package pods is a separate module with the programs that the real containerd needs to run
// pods under Wine, since Wine lacks the parts of Windows that run containers:
//
//   - shim: containerd-shim-lab-v1.exe, the runtime io.containerd.lab.v1.
//   - snapshotter: the files of images and containers.
//   - cni: a network plugin that returns an address, and makes at most an endpoint of HNS.
//   - flannel: stands for flanneld.exe, as far as it makes the HNS network of pods.
//   - hcn: the calls of HNS of both.
//   - image: a registry that serves images with one program each.
//   - burn: the program of these images.
//   - curl: stands for Windows' curl.exe in images.
//   - pipe: named pipes that work under Wine.
//
// See the end-to-end tests (e2e/pods_test.go) for how they work together.
package pods
