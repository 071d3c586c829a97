package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// headStart is how long swdt waits for the measurement of the link before it begins to make a
// patch. A link that answers sooner may be too fast for any patch. On such a link, making a patch
// at the same time would take processor time from the measurement and distort it, so swdt first
// completes the measurement.
const headStart = 30 * time.Millisecond

// errWhole reports that sending the whole file is faster than a patch.
var errWhole = errors.New("the whole file is the faster way")

// errUseless reports that sending the patch, which is already made, takes longer than sending the
// whole file.
var errUseless = errors.New("to send the whole file is faster than to send the patch")

// difference sends the difference between the new file and its base, a file that both the node and
// your machine's store have. The node verifies the base and the result.
type difference struct {
	*sending
	base Base
}

// base returns the first of the file's Bases that your machine's store has as well. It returns
// false if the store has none of them, or if the file's size makes a comparison not worthwhile.
func (s *sending) base() (Base, bool) {
	if s.depot == nil || !s.file.worthComparing() {
		return Base{}, false
	}
	for _, base := range s.file.Bases {
		if base.Size <= largestDiff && base.SHA256 != s.file.SHA256 && s.depot.store.Has(base.SHA256) {
			if base.Size == 0 {
				base.Size = s.file.Size
			}
			return base, true
		}
	}
	return Base{}, false
}

func (d *difference) send(ctx context.Context, part, destination string) (Result, error) {
	made, err := d.choose(ctx)
	if err != nil {
		return Result{}, err
	}
	result := Result{
		Method: MethodDelta, Compressed: true, Variant: made.info.Variant.String(), DiffSeconds: made.took.Seconds(),
	}
	progress := d.reporter.Transfer(d.file.Label, int64(len(made.bytes)))
	defer progress.End()
	result.SentBytes, err = d.apply(ctx, made, part, destination, progress)
	return result, err
}

// Prepare makes, ahead of time, the patch that Send will probably choose for the file if the link
// still has its last measured speed. Prepare makes no patch if that speed is unknown, or if sending
// the whole file is expected to be faster. If Send does not use the patch, only your machine's time
// is lost.
func Prepare(ctx context.Context, n *node.Node, file File) error {
	s := &sending{node: n, file: file, depot: file.Depot, reporter: ui.Discard{}}
	base, ok := s.base()
	link := n.Speed.Latest()
	if !ok || link.BytesPerSecond == 0 {
		return nil
	}
	d := &difference{sending: s, base: base}
	way, estimate := d.likely(link)
	if way.whole {
		return nil
	}
	made, err := d.depot.patch(ctx, d.key(way.variant), file)
	if err == nil && way.variant == delta.Fast && estimate.worthSmall(d.pair(), int64(len(made.bytes)), link) {
		_, err = d.depot.patch(ctx, d.key(delta.Small), file)
	}
	return err
}

// likely returns the way of sending that is expected to be the fastest, and the estimate on which
// that choice is based.
func (d *difference) likely(link node.Reading) (way, estimate) {
	estimate := d.depot.estimate(d.file)
	return estimate.choose(d.pair(), link, func(v delta.Variant) bool { return d.depot.made(d.key(v)) }), estimate
}

// straightAway is the largest existing patch, in bytes, that is sent over a link of unknown speed.
// The measurement of the link would send about as many bytes.
const straightAway = 256 << 10

// choose returns the patch to send. It returns errWhole or errUseless if sending the whole file is
// faster. It starts to make the Fast patch, which suits most links, while the link is still being
// measured.
func (d *difference) choose(ctx context.Context) (patch, error) {
	early, giveUp := context.WithCancel(ctx)
	defer giveUp()
	begin, fast := d.fast(early)
	link, known := d.recentReading()
	if !known {
		if p, ok := d.depot.begun(ctx, d.key(delta.Fast), d.file); ok && len(p.bytes) <= straightAway {
			d.reporter.Debug("%s: a patch of %s exists already", d.file.Label, ui.Size(int64(len(p.bytes))))
			return p, nil
		}
		headStart := time.AfterFunc(headStart, begin)
		link = d.link(ctx, d.file.Size, func() { headStart.Stop() })
		headStart.Stop()
	}
	way, estimate := d.likely(link)
	d.depot.costs.decay(way)
	d.reporter.Debug("%s: the link takes %s/s, %s there and back: %s", d.file.Label,
		ui.Size(int64(link.BytesPerSecond)), ui.Seconds(link.RoundTrip), way)
	if way.whole {
		d.depot.remember()
		return patch{}, errWhole
	}
	if way.variant == delta.Small {
		giveUp()
		return d.small(ctx, link)
	}
	begin()
	d.depot.choose(d.key(delta.Fast))
	first := <-fast
	if first.err == nil && estimate.worthSmall(d.pair(), int64(len(first.patch.bytes)), link) {
		d.reporter.Debug("%s: a patch of %s is worth making smaller", d.file.Label,
			ui.Size(int64(len(first.patch.bytes))))
		return d.small(ctx, link)
	}
	if first.err != nil {
		return patch{}, first.err
	}
	return d.unlessSlower(first.patch, link)
}

// made is the result of making a patch.
type made struct {
	patch patch
	err   error
}

// fast returns the function begin, which starts a goroutine that makes the Fast patch. It also
// returns the channel on which that goroutine sends its result.
func (d *difference) fast(ctx context.Context) (begin func(), ended <-chan made) {
	result := make(chan made, 1)
	begin = sync.OnceFunc(func() {
		go func() {
			p, err := d.depot.patch(ctx, d.key(delta.Fast), d.file)
			result <- made{p, err}
		}()
	})
	return begin, result
}

func (d *difference) pair() pair {
	return pair{old: d.base.Size, new: d.file.Size}
}

func (d *difference) key(v delta.Variant) patchKey { return patchKey{d.base.SHA256, d.file.SHA256, v} }

func (d *difference) small(ctx context.Context, link node.Reading) (patch, error) {
	made, err := d.depot.patch(ctx, d.key(delta.Small), d.file)
	if err != nil {
		return patch{}, err
	}
	return d.unlessSlower(made, link)
}

// unlessSlower returns errUseless if sending the patch would take longer than sending the whole
// file.
func (d *difference) unlessSlower(p patch, link node.Reading) (patch, error) {
	size := int64(len(p.bytes))
	estimate := d.depot.estimate(d.file)
	if estimate.patch(size, d.file.Size, link) > estimate.whole(d.file.Size, link).seconds {
		return patch{}, fmt.Errorf("a patch of %s: %w", ui.Size(size), errUseless)
	}
	return p, nil
}

// apply sends the patch, from which the node makes the file.
func (d *difference) apply(ctx context.Context, p patch, part, destination string, progress ui.Progress) (
	sent int64, err error) {
	failed := func(err error) error {
		return fmt.Errorf("send the difference of %s to %s: %w", d.file.Label, d.base.Path, err)
	}
	ctx, cancel := context.WithCancel(ctx) // ends the call if apply returns first
	defer cancel()
	stream, err := d.node.Files.Patch(ctx)
	if err != nil {
		return 0, failed(err)
	}
	request := &agentv1.PatchRequest{Header: &agentv1.PatchHeader{
		Base: d.base.Path, BaseSha256: d.base.SHA256,
		Path: part, RenameTo: destination, Size: d.file.Size, Sha256: d.file.SHA256,
		MakeFolder: true, Modified: timestamppb.New(d.file.Modified), Sddl: d.file.SDDL,
	}}
	for rest := p.bytes; ; {
		n := min(len(rest), patchChunk)
		request.Data, rest = rest[:n], rest[n:]
		if err = stream.Send(request); err != nil {
			break
		}
		sent += int64(n)
		progress.Add(int64(n))
		if len(rest) == 0 {
			break
		}
		request = &agentv1.PatchRequest{}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return sent, failed(err)
	}
	// io.EOF from Send means that the node has ended the call; CloseAndRecv returns the cause.
	reply, err := stream.CloseAndRecv()
	if err != nil {
		return sent, failed(err)
	}
	if reply.GetSha256() != d.file.SHA256 {
		return sent, failed(fmt.Errorf("the node made a different file from it (SHA-256 %.12s)", reply.GetSha256()))
	}
	d.depot.costs.recordApply(d.file.Size, sent, d.node.Speed.Latest(), reply.GetApplying().AsDuration())
	d.depot.remember()
	d.reporter.Debug("%s: a %s patch of %s, applied and verified in %s", d.file.Label,
		p.info.Variant, ui.Size(sent), ui.Seconds(reply.GetApplying().AsDuration()))
	return sent, nil
}

// patchChunk is the size of the part of a patch that one message carries. It is small, so that the
// node applies the first parts while the rest is on its way.
const patchChunk = 64 << 10
