//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// way is one way to send the new kubelet to the far end.
type way struct {
	name string
	// prepare restores the state that the far end had before the push. The time of prepare is not
	// measured.
	prepare func(ctx context.Context) error
	push    func(ctx context.Context, l *farEnds) (taken, Push, error)
}

// farEnds are the far ends behind one link. One is the Windows node. The other is this machine
// itself, for the tools that need a copy of themselves at the far end.
type farEnds struct {
	itself, node *proxy
	nodeFile     string
}

// pushes sends the rebuilt kubelet to a far end over each link, in each way.
func (b *bench) pushes(ctx context.Context) (Pushes, error) {
	pair, err := b.kubelets()
	if err != nil {
		return Pushes{}, err
	}
	node, err := b.startWineNode(ctx, filepath.Join(b.work, "pushes"))
	defer node.end(ctx)
	if err != nil {
		return Pushes{}, err
	}
	itself, err := startSSHD(ctx, node.keys, "Subsystem sftp internal-sftp")
	if err != nil {
		return Pushes{}, err
	}
	defer itself.stop()
	p := &pusher{bench: b, pair: pair, node: node, far: filepath.Join(b.work, "far")}
	if err := p.begin(ctx); err != nil {
		return Pushes{}, err
	}
	results := Pushes{Repeat: b.repeat, Pair: pair}
	for _, link := range links() {
		if len(b.links) > 0 && !slices.Contains(b.links, link.Name) {
			continue
		}
		result, err := p.pushOver(ctx, link, itself)
		if err != nil {
			return results, err
		}
		results.Links = append(results.Links, result)
	}
	return results, nil
}

func (b *bench) kubelets() (Pair, error) {
	c := *b
	c.pairs = []string{kubeletPair}
	pairs, err := c.allPairs(context.Background()) // starts nothing: lab/build.sh has built this pair
	if err != nil {
		return Pair{}, err
	}
	return pairs[0], nil
}

// pusher holds the state of the part pushes.
type pusher struct {
	*bench
	pair    Pair
	node    *wineNode
	far     string // the folder of the far ends that are not the Windows node
	oldFile string // a node file that pushes the old binary, without a proxy
}

const component, destination = "bench-kubelet", `C:\k\kubelet.exe`

// begin pushes the old binary to the node with swdt, so both the node and swdt's cache
// have it.
func (p *pusher) begin(ctx context.Context) error {
	if err := os.MkdirAll(p.far, 0o700); err != nil {
		return err
	}
	var err error
	p.oldFile, err = p.node.nodeFile("old", p.node.server.address, provisioner(component, p.pair.old, destination))
	if err != nil {
		return err
	}
	_, _, err = p.node.push(ctx, p.oldFile, component)
	return err
}

func (p *pusher) pushOver(ctx context.Context, link Link, itself *sshd) (LinkResult, error) {
	result := LinkResult{Link: link}
	ends := &farEnds{}
	var err error
	if ends.itself, err = newProxy(ctx, link, itself.address); err != nil {
		return result, err
	}
	defer ends.itself.Close()
	if ends.node, err = newProxy(ctx, link, p.node.server.address); err != nil {
		return result, err
	}
	defer ends.node.Close()
	ends.nodeFile, err = p.node.nodeFile("new", ends.node.address(), provisioner(component, p.pair.new, destination))
	if err != nil {
		return result, err
	}
	result.Ways, err = p.measure(ctx, link, ends)
	return result, err
}

// measure runs the ways by turns, round by round, so that other load on the machine
// affects all of them.
func (p *pusher) measure(ctx context.Context, link Link, ends *farEnds) ([]Push, error) {
	ways := p.ways()
	rounds := make([][]Push, len(ways))
	for range p.repeat {
		for i, w := range ways {
			if n := len(rounds[i]); n > 0 && (rounds[i][n-1].Error != "" || rounds[i][n-1].Seconds > slow) {
				continue
			}
			cell := p.once(ctx, w, ends)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], cell)
		}
	}
	var cells []Push
	for i, w := range ways {
		cell := medianPush(rounds[i], rounds[0])
		logf("%-15s %-28s %s", link.Name, w.name, cell)
		cells = append(cells, cell)
	}
	return cells, nil
}

func (p *pusher) once(ctx context.Context, w way, ends *farEnds) Push {
	cell := Push{Way: w.name}
	err := w.prepare(ctx)
	if err == nil {
		var t taken
		t, cell, err = w.push(ctx, ends)
		cell.Way, cell.Seconds = w.name, t.seconds
	}
	if err != nil {
		cell.Error = err.Error()
	}
	return cell
}

// medianPush returns the last round, with its times replaced by the medians of all rounds. connects are the rounds of
// wayConnect.
func medianPush(rounds, connects []Push) Push {
	cell := rounds[len(rounds)-1]
	of := func(value func(i int, p Push) float64) float64 {
		var all []float64
		for i, r := range rounds {
			all = append(all, value(i, r))
		}
		return median(all)
	}
	cell.Seconds = of(func(_ int, p Push) float64 { return p.Seconds })
	cell.TransferSeconds = of(func(_ int, p Push) float64 { return p.TransferSeconds })
	if cell.SwappedSeconds == 0 {
		return cell
	}
	cell.AfterConnect = of(func(i int, p Push) float64 { return p.SwappedSeconds - connects[min(i, len(connects)-1)].Seconds })
	cell.SwappedSeconds = of(func(_ int, p Push) float64 { return p.SwappedSeconds })
	parts := make([]Part, len(cell.Parts))
	for i, part := range cell.Parts {
		parts[i] = Part{part.Name, of(func(_ int, p Push) float64 { return p.seconds(part.Name) })}
	}
	cell.Parts = parts
	return cell
}

// seconds returns the sum of the parts with these names.
func (p Push) seconds(names ...string) (sum float64) {
	for _, part := range p.Parts {
		if slices.Contains(names, part.Name) {
			sum += part.Seconds
		}
	}
	return sum
}

// The names of the ways in tables and plots.
const (
	wayConnect    = "ssh true"
	wayScp        = "scp"
	wayRsync      = "rsync -z"
	wayZstdScp    = "zstd --patch-from + scp"
	wayZstdStream = "zstd --patch-from \\| ssh"
	waySwdt       = "swdt push"
	waySwdtFirst  = "swdt push, first push"
)

func (p *pusher) ways() []way {
	nothing := func(context.Context) error { return nil }
	return []way{
		{wayConnect, nothing, p.connect},
		{wayScp, p.emptyFar, p.scp},
		{wayRsync, p.oldFar, p.rsync},
		{wayZstdScp, p.oldFar, p.zstdScp},
		{wayZstdStream, p.oldFar, p.zstdStream},
		{waySwdt, p.oldNode, p.swdtPush},
		{waySwdtFirst, p.emptyNode, p.swdtPush},
	}
}

func (p *pusher) farFile() string { return filepath.Join(p.far, "kubelet.exe") }

func (p *pusher) emptyFar(context.Context) error {
	return errors.Join(os.RemoveAll(p.far), os.Mkdir(p.far, 0o700))
}

func (p *pusher) oldFar(ctx context.Context) error {
	return errors.Join(p.emptyFar(ctx), copyFile(p.pair.old, p.farFile()))
}

// arrived checks that the far end now has the new binary. The check is not part of the time t.
func (p *pusher) arrived(t taken, err error) (taken, Push, error) {
	if err == nil {
		err = expectSame(p.farFile(), p.pair.new)
	}
	return t, Push{}, err
}

// connect measures a new connection, which is part of every other way's time.
func (p *pusher) connect(ctx context.Context, l *farEnds) (taken, Push, error) {
	t, err := words("ssh", append(p.sshOptions(l), "root@127.0.0.1", "true")...).run(ctx)
	return t, Push{}, err
}

func (p *pusher) sshOptions(l *farEnds) []string {
	return append(p.node.keys.clientOptions(), "-p", l.itself.port())
}

func (p *pusher) scpOptions(l *farEnds) []string {
	return append(p.node.keys.clientOptions(), "-q", "-P", l.itself.port())
}

func (p *pusher) scp(ctx context.Context, l *farEnds) (taken, Push, error) {
	return p.arrived(words("scp", append(p.scpOptions(l), p.pair.new, "root@127.0.0.1:"+p.farFile())...).run(ctx))
}

func (p *pusher) rsync(ctx context.Context, l *farEnds) (taken, Push, error) {
	shell := "ssh " + strings.Join(p.sshOptions(l), " ")
	return p.arrived(words("rsync", "-z", "--ignore-times", "-e", shell, p.pair.new, "root@127.0.0.1:"+
		p.farFile()).run(ctx))
}

// zstdScp does the work of a short script: make a patch, copy it, apply it.
func (p *pusher) zstdScp(ctx context.Context, l *farEnds) (taken, Push, error) {
	patch := filepath.Join(p.work, "push.zst")
	script := fmt.Sprintf(`zstd -q -f -1 --long=27 --patch-from=%[1]s %[2]s -o %[3]s &&
scp %[4]s %[3]s root@127.0.0.1:%[5]s.zst &&
ssh %[6]s root@127.0.0.1 'zstd -q -f -d --long=27 --patch-from=%[5]s %[5]s.zst -o %[5]s.new && mv %[5]s.new %[5]s'`,
		p.pair.old, p.pair.new, patch, strings.Join(p.scpOptions(l), " "), p.farFile(),
		strings.Join(p.sshOptions(l), " "))
	return p.arrived(words("sh", "-c", script).run(ctx))
}

// zstdStream does the work of a better script: it makes, sends and applies the patch at the same
// time, on one connection.
func (p *pusher) zstdStream(ctx context.Context, l *farEnds) (taken, Push, error) {
	script := fmt.Sprintf(`set -o pipefail; zstd -q -1 --long=27 --patch-from=%[1]s %[2]s -c |
ssh %[3]s root@127.0.0.1 'zstd -q -f -d --long=27 --patch-from=%[4]s -o %[4]s.new && mv %[4]s.new %[4]s'`,
		p.pair.old, p.pair.new, strings.Join(p.sshOptions(l), " "), p.farFile())
	return p.arrived(words("bash", "-c", script).run(ctx))
}

// oldNode pushes the old binary, and removes the new binary, which the node keeps for a rollback. If
// the node still had the new binary, a push of it would need no transfer.
func (p *pusher) oldNode(ctx context.Context) error {
	if _, _, err := p.node.push(ctx, p.oldFile, component); err != nil {
		return err
	}
	return p.forget(".swdt-old")
}

// emptyNode restores the state of a node that never had the file.
func (p *pusher) emptyNode(ctx context.Context) error {
	return p.forget("", ".swdt-old")
}

func (p *pusher) forget(suffixes ...string) error {
	for _, suffix := range suffixes {
		err := os.Remove(p.node.drive("k/kubelet.exe" + suffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (p *pusher) swdtPush(ctx context.Context, l *farEnds) (taken, Push, error) {
	t, pushed, err := p.node.push(ctx, l.nodeFile, component)
	if err == nil {
		err = expectSame(p.node.drive("k/kubelet.exe"), p.pair.new)
	}
	cell := Push{
		TransferSeconds: pushed.Seconds.Obtain + pushed.Seconds.Transfer, Parts: pushed.Parts,
		Method: pushed.Transfer.Method, SentBytes: pushed.Transfer.SentBytes,
	}
	cell.SwappedSeconds = t.seconds - cell.seconds("start", "check", "end") // no part but these follows the swap
	return t, cell, err
}
