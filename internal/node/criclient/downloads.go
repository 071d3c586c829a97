package criclient

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The CRI does not report the progress of a pull. containerd's own API on the same pipe does: each layer that is being
// downloaded is an ingest of its content store (api/services/content/v1/content.proto, the same since 1.0).
const (
	listDownloads = "/containerd.services.content.v1.Content/ListStatuses"
	// ofKubernetes is the namespace of the images that the CRI pulls (internal/cri/constants/constants.go in containerd 2.4.2).
	namespaceKey, ofKubernetes = "containerd-namespace", "k8s.io"
	// layerPrefix begins the names of the downloads of layers (core/remotes/handlers.go, MakeRefKey).
	layerPrefix = "layer-sha256:"

	downloadsInterval = time.Second
	mostDownloads     = 1_000
	// largestDownload bounds a layer, in bytes.
	largestDownload = 1 << 40
)

// watchDownloads calls progress with the bytes that containerd downloads, until stop is called. It ends by itself at the first
// answer that it cannot use: progress is no reason for a pull to fail.
func (c *Client) watchDownloads(ctx context.Context, progress func(int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, namespaceKey, ofKubernetes))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		seen := downloads{}
		ticker := time.NewTicker(downloadsInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			now, ok := c.downloads(ctx)
			if !ok {
				return
			}
			if more := seen.add(now); more > 0 {
				progress(more)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// downloads lists the layers that containerd is downloading.
func (c *Client) downloads(ctx context.Context) ([]download, bool) {
	// The request without filters is an empty message. The answer is read as unknown fields of one, since the module with
	// containerd's messages brings its other protocols with it.
	var answer emptypb.Empty
	if err := c.connection.Invoke(ctx, listDownloads, &emptypb.Empty{}, &answer); err != nil {
		return nil, false
	}
	var all []download
	ok := eachField(answer.ProtoReflect().GetUnknown(), func(number protowire.Number, text []byte, _ uint64) bool {
		if number != 1 {
			return true
		}
		d, ok := parseDownload(text)
		if strings.HasPrefix(d.ref, layerPrefix) {
			all = append(all, d)
		}
		return ok && len(all) <= mostDownloads
	})
	return all, ok
}

// download is a layer that is being downloaded.
type download struct {
	ref          string
	offset, size int64 // bytes; size is 0 if it is not known
}

func parseDownload(data []byte) (d download, ok bool) {
	ok = eachField(data, func(number protowire.Number, text []byte, value uint64) bool {
		switch number {
		case 3:
			d.ref = string(text)
		case 4:
			d.offset = int64(min(value, largestDownload))
		case 5:
			d.size = int64(min(value, largestDownload))
		}
		return len(d.ref) <= longestName
	})
	return d, ok
}

// eachField calls visit for each field of a message, and reports whether all of it was read. Groups are refused.
func eachField(data []byte, visit func(number protowire.Number, text []byte, value uint64) bool) bool {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		var text []byte
		var value uint64
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		switch kind {
		case protowire.BytesType:
			text, _ = protowire.ConsumeBytes(data[n:])
		case protowire.VarintType:
			value, _ = protowire.ConsumeVarint(data[n:])
		case protowire.StartGroupType, protowire.EndGroupType:
			return false
		}
		if size < 0 || !visit(number, text, value) {
			return false
		}
		data = data[n+size:]
	}
	return true
}

// downloads has how many bytes of each layer were seen so far.
type downloads map[string]download

// add returns how many bytes are new. A layer that is not listed any more was downloaded as a whole, if its size is known. One
// that begins again is not new until it is longer than before.
func (seen downloads) add(now []download) (more int64) {
	listed := map[string]bool{}
	for _, d := range now {
		listed[d.ref] = true
		before := seen[d.ref]
		if len(seen) >= mostDownloads && before.ref == "" {
			continue
		}
		if d.offset > before.offset {
			more += d.offset - before.offset
		} else {
			d.offset = before.offset
		}
		seen[d.ref] = d
	}
	for ref, d := range seen {
		if !listed[ref] && d.size > d.offset {
			more += d.size - d.offset
			d.offset = d.size
			seen[ref] = d
		}
	}
	return more
}
