package onnode

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// The files that the kubelet mounts into the pod, below the root of the container.
const (
	accountFolder  = "var/run/secrets/kubernetes.io/serviceaccount"
	pullSecretFile = "var/run/secrets/swdt-registry/.dockerconfigjson"
)

// containerRoot returns the folder below which a HostProcess container finds its volumes, with every
// version of containerd. It is not C:\: with containerd 1.6, that is the node's own, in which every
// user of the node may make folders.
func containerRoot() (string, error) {
	const variable = "CONTAINER_SANDBOX_MOUNT_POINT"
	root := os.Getenv(variable)
	if root == "" {
		return "", fmt.Errorf("find the files of this pod: containerd has not set %s: run the program in the "+
			"HostProcess pod of deploy/", variable)
	}
	return filepath.Clean(root), nil
}

// podAccess returns the access of a pod's account to the API server, as rest.InClusterConfig does, with the
// files below root. The client reads a renewed token by itself.
func podAccess(root string) (*rest.Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, fmt.Errorf("find the API server of this pod: %w", rest.ErrNotInCluster)
	}
	folder := filepath.Join(root, filepath.FromSlash(accountFolder))
	token := filepath.Join(folder, "token")
	content, err := os.ReadFile(token)
	if err != nil {
		return nil, fmt.Errorf("read the token of this pod: %w", err)
	}
	return &rest.Config{
		Host: "https://" + net.JoinHostPort(host, port), BearerToken: string(content), BearerTokenFile: token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(folder, "ca.crt")},
	}, nil
}
