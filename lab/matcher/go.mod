// Builds programs that choose manifests with the code of the real containerd; nothing is imported from here. This file is that of
// version 1.7.35, and versions/ has those of all.
module github.com/swdt-dev/swdt/lab/matcher

go 1.26.6

require (
	github.com/containerd/containerd v1.7.35
	github.com/containerd/containerd/v2 v2.4.2
	github.com/containerd/errdefs v1.0.0
	github.com/containerd/platforms v1.0.0-rc.5
	github.com/opencontainers/go-digest v1.0.0
	github.com/opencontainers/image-spec v1.1.1
	golang.org/x/sys v0.48.0
)

require (
	github.com/Microsoft/hcsshim v0.15.0-rc.4 // indirect
	github.com/containerd/containerd/api v1.12.0 // indirect
	github.com/containerd/log v0.2.0 // indirect
	github.com/containerd/typeurl/v2 v2.3.0 // indirect
	github.com/distribution/reference v0.6.0 // indirect
	github.com/klauspost/compress v1.20.0 // indirect
	github.com/sirupsen/logrus v1.10.2 // indirect
	golang.org/x/sync v0.23.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260825221802-da73d73af1c5 // indirect
	google.golang.org/grpc v1.83.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
