package selftest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/throwaway"
)

// build is a build of the throw-away program on your machine.
type build struct {
	path   string
	sha256 string
	size   int64
}

// The versions of the throw-away program. Broken ends at once with brokenCode.
const (
	first, second, third, broken = "v1", "v2", "v3", "v4-broken"
	brokenCode                   = 7
)

// program makes a build of the throw-away program, once for each version.
func (t *trial) program(version string) (build, error) {
	if b, ok := t.builds[version]; ok {
		return b, nil
	}
	note := throwaway.Note{Version: version}
	if version == broken {
		note.ExitCode = brokenCode
	}
	b, err := t.makeProgram(note)
	if err != nil {
		return build{}, fmt.Errorf("make the throw-away program: %w", err)
	}
	t.builds[version] = b
	return b, nil
}

func (t *trial) makeProgram(note throwaway.Note) (b build, err error) {
	executable, err := t.agent.Open()
	if err != nil {
		return b, err
	}
	defer executable.Close()
	program, err := throwaway.Build(executable, note)
	if err != nil {
		return b, err
	}
	b.path = filepath.Join(t.folder, note.Version+".exe")
	file, err := os.Create(b.path)
	if err != nil {
		return b, err
	}
	hash := sha256.New()
	b.size, err = io.Copy(io.MultiWriter(file, hash), program)
	b.sha256 = hex.EncodeToString(hash.Sum(nil))
	return b, errors.Join(err, file.Close())
}

// installed brings the first version of the program to the node, unless some version is there.
func (t *trial) installed(ctx context.Context) error {
	_, err := t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: programPath})
	if !errors.Is(err, fault.ErrNotExist) {
		return err
	}
	b, err := t.program(first)
	if err != nil {
		return err
	}
	_, err = transfer.Upload(ctx, t.node, b.path, programPath, inner{t.reporter})
	return err
}

// serving makes the throw-away service if it is missing, and starts it if it does not run.
func (t *trial) serving(ctx context.Context) (*agentv1.ServiceStatus, error) {
	if err := t.installed(ctx); err != nil {
		return nil, err
	}
	reply, err := t.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
	if errors.Is(err, fault.ErrNoService) {
		reply, err = t.node.Services.Create(ctx, serviceConfig())
	}
	if err != nil || reply.GetStatus().GetState() == agentv1.ServiceState_SERVICE_STATE_RUNNING {
		return reply.GetStatus(), err
	}
	reply, err = t.node.Services.Start(ctx, &agentv1.StartServiceRequest{Name: service,
		Timeout: durationpb.New(startLimit)})
	return reply.GetStatus(), err
}

const startLimit = time.Minute

func serviceConfig() *agentv1.ServiceConfig {
	return &agentv1.ServiceConfig{
		Name: service, DisplayName: layout.SelftestDisplayName, Description: "Made by swdt selftest, and removed at its end.",
		CommandLine: `"` + programPath + `" ` + strings.Join([]string{throwaway.Argument, throwaway.Service,
			"--log-file", logPath}, " "),
		StartType: agentv1.StartType_START_TYPE_MANUAL,
	}
}

// pushed is a node file whose only component is the throw-away service, with this build as source.
func (t *trial) pushed(b build) config.Document {
	settle, timeout, stop := seconds(1), seconds(60), seconds(20)
	document := config.Document{Node: v1alpha1.Node{Metadata: t.document.Node.Metadata}}
	document.Node.Spec.Kubernetes.Provisioners = []v1alpha1.Provisioner{{
		Name: service, SourceURL: b.path, Destination: programPath,
		Health: &v1alpha1.Health{Settle: settle, Timeout: timeout, StopTimeout: stop},
	}}
	return document
}

func seconds(n int) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: time.Duration(n) * time.Second}
}

// ran has the output and the exit code of a program.
type ran struct {
	stdout, stderr string
	code           int
}

// run runs a program of the node to its end.
func (t *trial) run(ctx context.Context, stdin string, path string, args ...string) (ran, error) {
	var stdout, stderr bytes.Buffer
	code, err := command.Run(ctx, t.node.Processes, &agentv1.RunCommand{Path: path, Args: args},
		command.Streams{Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr})
	return ran{stdout.String(), stderr.String(), code}, err
}
