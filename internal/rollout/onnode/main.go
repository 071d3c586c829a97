package onnode

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/thismachine"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// nodeVariable is the environment variable with the name of the pod's node.
const nodeVariable = "NODE_NAME"

// Main runs the program in its pod until ctx ends. Its files are in the profile of SYSTEM, in which no
// ordinary user of the node can write.
func Main(ctx context.Context) error {
	name := os.Getenv(nodeVariable)
	if name == "" {
		return fmt.Errorf("read the node's name: %s is not set; deploy/ has the pod that sets it", nodeVariable)
	}
	root, err := containerRoot()
	if err != nil {
		return err
	}
	access, err := podAccess(root)
	if err != nil {
		return err
	}
	c, err := cluster.FromConfig(access)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	agent, err := agentbin.Embedded()
	if err != nil {
		return err
	}
	files := filepath.Join(thismachine.SystemProfile, "swdt")
	options := node.Options{Agent: agent, Way: thismachine.Way{Folder: thismachine.SystemProfile},
		StateFile: filepath.Join(files, "machines.json")}
	err = Run(ctx, Options{
		Node: name, Client: c.Dynamic(), Reporter: logged{},
		Sources: source.NewSet(source.Options{Cache: filepath.Join(files, "cache"),
			Credential: distribution.MountedPullSecret(filepath.Join(root, filepath.FromSlash(pullSecretFile)))}),
		Open: func(ctx context.Context) (*node.Node, error) {
			return node.Connect(ctx, config.Document{}, options)
		},
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// logged prints the progress as lines of a log.
type logged struct{ ui.Discard }

func (logged) Step(format string, args ...any) { log.Printf(format, args...) }
func (logged) Info(format string, args ...any) { log.Printf(format, args...) }
func (logged) Warn(format string, args ...any) { log.Printf("warning: "+format, args...) }
