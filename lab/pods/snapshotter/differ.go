//go:build windows

package main

import (
	"context"

	diffapi "github.com/containerd/containerd/api/services/diff/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// differ only reports that it has applied a layer. The snapshotter unpacks the layer when
// containerd commits the snapshot.
type differ struct {
	diffapi.UnimplementedDiffServer
}

func (differ) Apply(_ context.Context, r *diffapi.ApplyRequest) (*diffapi.ApplyResponse, error) {
	if r.Diff.GetMediaType() != "application/vnd.oci.image.layer.v1.tar" {
		return nil, status.Errorf(codes.Unimplemented, "a layer of type %s: the lab has uncompressed ones alone",
			r.Diff.GetMediaType())
	}
	return &diffapi.ApplyResponse{Applied: r.Diff}, nil
}
