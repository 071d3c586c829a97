//go:build windows

package main

import (
	"context"

	diffapi "github.com/containerd/containerd/api/services/diff/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// differ applies compressed layers: it unpacks them into the folder of the uncompressed layer's digest. Of an
// uncompressed layer it only reports that it has applied it: the snapshotter unpacks the layer when containerd
// commits the snapshot.
type differ struct {
	diffapi.UnimplementedDiffServer
	store *store
}

const uncompressed = "application/vnd.oci.image.layer.v1.tar"

func (d differ) Apply(_ context.Context, r *diffapi.ApplyRequest) (*diffapi.ApplyResponse, error) {
	switch r.Diff.GetMediaType() {
	case uncompressed:
		return &diffapi.ApplyResponse{Applied: r.Diff}, nil
	case uncompressed + "+gzip":
		digest, size, err := d.store.decompress(r.Diff.GetDigest())
		if err != nil {
			return nil, status.Error(codes.FailedPrecondition, err.Error())
		}
		return &diffapi.ApplyResponse{Applied: &types.Descriptor{MediaType: uncompressed, Digest: digest, Size: size}}, nil
	}
	return nil, status.Errorf(codes.Unimplemented, "the lab has no layers of type %s", r.Diff.GetMediaType())
}
