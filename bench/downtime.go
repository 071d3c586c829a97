//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// pushesPerSize is the number of measured pushes of each service's binary.
const pushesPerSize = 9

// tinyService is a service with a small binary, or the same binary padded to a size.
type tinyService struct {
	name, suffix string
}

func (s tinyService) destination() string { return `C:\t\` + s.name + `.exe` }

// downtime pushes a small and a large binary of the same program in turns, so that other load on
// the machine affects both.
func (b *bench) downtime(ctx context.Context) (Downtime, error) {
	node, err := b.startWineNode(ctx, filepath.Join(b.work, "downtime"))
	defer node.end(ctx)
	if err != nil {
		return Downtime{}, err
	}
	services := []tinyService{{"tiny-small", ""}, {"tiny-large", "-100M"}}
	files := make([]string, 2) // node files, by version
	for i, version := range []string{"v1.0.0", "v1.0.1"} {
		var provisioners []string
		for _, s := range services {
			provisioners = append(provisioners,
				provisioner(s.name, filepath.Join(b.lab, "tiny-"+version+s.suffix+".exe"), s.destination()))
		}
		if files[i], err = node.nodeFile(version, node.server.address, provisioners...); err != nil {
			return Downtime{}, err
		}
	}
	result := Downtime{}
	for _, s := range services {
		size, err := node.install(ctx, files[0], s)
		if err != nil {
			return result, err
		}
		result.Sizes = append(result.Sizes, DowntimeOfSize{Bytes: size})
	}
	for i := range pushesPerSize {
		for j, s := range services {
			_, pushed, err := node.push(ctx, files[(i+1)%2], s.name)
			if err != nil {
				return result, err
			}
			if pushed.Action != "replaced" {
				return result, fmt.Errorf("the push of %s was %s", s.name, pushed.Action)
			}
			logf("%-11s down %.3fs", s.name, pushed.Seconds.Down)
			result.Sizes[j].Seconds = append(result.Sizes[j].Seconds, pushed.Seconds.Down)
		}
	}
	return result, nil
}

// install registers and starts a binary as a service, and returns the binary's size.
func (n *wineNode) install(ctx context.Context, nodeFile string, s tinyService) (int64, error) {
	if _, _, err := n.push(ctx, nodeFile, s.name); err != nil {
		return 0, err
	}
	for _, command := range [][]string{
		{"sc", "create", s.name, "binPath=", s.destination()},
		{"net", "start", s.name},
	} {
		if _, err := n.swdt(ctx, append([]string{"exec", "-c", nodeFile, "--"}, command...)...); err != nil {
			return 0, err
		}
	}
	info, err := os.Stat(n.drive("t/" + s.name + ".exe"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
