module github.com/swdt-dev/swdt/lab/matcher

go 1.26.0

require (
	github.com/containerd/containerd/v2 v2.1.6
	github.com/containerd/errdefs v1.0.0
	github.com/containerd/platforms v1.0.0-rc.2
	github.com/opencontainers/go-digest v1.0.0
	github.com/opencontainers/image-spec v1.1.1
	golang.org/x/sys v0.38.0
)

require (
	github.com/containerd/containerd/api v1.9.0 // indirect
	github.com/containerd/log v0.1.0 // indirect
	github.com/containerd/typeurl/v2 v2.2.3 // indirect
	github.com/distribution/reference v0.6.0 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/klauspost/compress v1.18.0 // indirect
	github.com/sirupsen/logrus v1.9.3 // indirect
	golang.org/x/sync v0.18.0 // indirect
	google.golang.org/protobuf v1.36.7 // indirect
)
