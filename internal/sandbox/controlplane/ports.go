package controlplane

import "github.com/swdt-dev/swdt/internal/sandbox/controlplane/freeport"

// ports are the TCP ports of a control plane. They are reserved until its programs have ended.
type ports struct {
	apiServer, etcd int
	*freeport.Reserved
}

func reservePorts() (*ports, error) {
	reserved, err := freeport.Reserve(2)
	if err != nil {
		return nil, err
	}
	return &ports{reserved.Numbers[0], reserved.Numbers[1], reserved}, nil
}
