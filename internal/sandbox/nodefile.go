package sandbox

import (
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// NodeFile returns the beginning of a node file for a sandbox: its name and credentials. This part
// alone already works with -c.
func NodeFile(name, hostname, privateKey string, hostKey ssh.PublicKey) string {
	return strings.NewReplacer(
		"NAME", strconv.Quote(name),
		"HOSTNAME", hostname,
		"PRIVATEKEY", strconv.Quote(privateKey),
		"FINGERPRINT", ssh.FingerprintSHA256(hostKey),
	).Replace(nodeFileText)
}

const nodeFileText = `# A sandbox of swdt. This file was written by "swdt sandbox up" and is removed by
# "swdt sandbox down": copy it to keep your changes.
apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: NAME
spec:
  credentials:
    username: Administrator
    hostname: HOSTNAME
    privateKey: PRIVATEKEY
    hostKey: FINGERPRINT
`

// ownSection shows, in comments, the uses of a node without sample binaries.
const ownSection = `
  # What "swdt setup" brings about:
  #
  # setup:
  #   enableRDP: true
  #   features:
  #     - Containers

  # What "swdt push" brings to the node and restarts:
  #
  # kubernetes:
  #   provisioners:
  #     - name: containerd
  #       sourceURL: ./containerd.exe
  #       destination: C:\Program Files\containerd\bin\containerd.exe
  #     - name: kubelet
  #       sourceURL: ./kubelet.exe
  #       destination: C:\k\kubelet.exe
`
