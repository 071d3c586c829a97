package imagecheck

import (
	"context"
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// The bounds on an image as a whole. A registry could send a thousand manifests with a thousand layers otherwise.
const (
	mostRead      = 64    // manifests whose layers are read
	mostAllLayers = 4_096 // of these manifests together
)

// boundError is returned for an image beyond a bound.
type boundError struct{ what string }

func (e *boundError) Error() string { return e.what }

// reading is an image with the parts that were read so far.
type reading struct {
	use     Use
	image   *Image
	err     error // why there is no image
	layers  map[int]readLayers
	total   int // layers
	configs map[int]imagefit.Platform
}

// readLayers are the layers of a manifest, or the reason why they could not be read.
type readLayers struct {
	layers Layers
	err    error
}

func (r *reading) layersOf(ctx context.Context, at int) (Layers, error) {
	if one, ok := r.layers[at]; ok {
		return one.layers, one.err
	}
	if len(r.layers) == mostRead {
		return Layers{}, r.image.refused(&boundError{fmt.Sprintf("a pull fetches more than %d of its manifests", mostRead)})
	}
	l, err := r.image.Layers(ctx, at)
	if r.total += len(l.All); r.total > mostAllLayers {
		l, err = Layers{}, r.image.refused(&boundError{fmt.Sprintf("its manifests have more than %d layers", mostAllLayers)})
	}
	r.layers[at] = readLayers{l, err}
	return l, err
}

// pulled returns the layers that a pull fetches, each once.
func (r *reading) pulled(ctx context.Context, choice imagefit.Choice) (all []distribution.Blob, err error) {
	seen := map[string]bool{}
	for _, at := range choice.Pulled {
		l, err := r.layersOf(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, layer := range l.All {
			if !seen[layer.Digest] {
				seen[layer.Digest] = true
				all = append(all, layer)
			}
		}
	}
	return all, nil
}

// platform returns the platform of a manifest, which is that of its configuration if the index names none.
func (r *reading) platform(ctx context.Context, at int) (imagefit.Platform, error) {
	if p := r.image.Manifests[at].Platform; p != nil {
		return *p, nil
	}
	if p, ok := r.configs[at]; ok {
		return p, nil
	}
	l, err := r.layersOf(ctx, at)
	if err != nil {
		return imagefit.Platform{}, err
	}
	p, err := r.image.Config(ctx, l)
	if err == nil {
		r.configs[at] = p
	}
	return p, err
}
