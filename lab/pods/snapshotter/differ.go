//go:build windows

package main

import (
	"context"

	diffapi "github.com/containerd/containerd/api/services/diff/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// differ reports that a layer was applied; the snapshotter applies it when the snapshot
// is committed.
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
