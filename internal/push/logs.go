package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/format/servicelog"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// logTail is the number of bytes at the end of a log in which its last lines are looked for.
const logTail = 16 << 10

// LogLines returns the last lines that a service logged, without stack traces, and the path of its log file on the node.
// most is the highest number of lines. The error is fault.ErrNotExist if the service does not log
// to a known file, or if that file does not exist.
func LogLines(ctx context.Context, n *node.Node, service string, most int) (file string, lines []string, err error) {
	reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		return "", nil, fmt.Errorf("look at service %s: %w", service, err)
	}
	program := reply.GetProgram()
	for _, path := range slices.Concat(program.GetLogs(), servicelog.Configured(service, program.GetCommandLine()),
		servicelog.Paths(service, reply.GetConfig().GetCommandLine())) {
		info, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
		switch {
		case errors.Is(err, fault.ErrNotExist) || err == nil && info.GetFolder():
			continue
		case err != nil:
			return path, nil, fmt.Errorf("look at %s: %w", path, err)
		}
		lines, err := lastLines(ctx, n, path, info.GetSize(), most)
		return path, lines, err
	}
	return "", nil, fmt.Errorf("find the log of service %s: %w: start it with --log-file", service, fault.ErrNotExist)
}

func lastLines(ctx context.Context, n *node.Node, path string, size int64, most int) ([]string, error) {
	offset := max(0, size-logTail)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := n.Files.Read(ctx, &agentv1.ReadRequest{Path: path, Offset: offset})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var text bytes.Buffer
	for text.Len() < 2*logTail { // the log may grow while it is read
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		text.Write(reply.GetData())
	}
	all := bytes.TrimRight(text.Bytes(), "\r\n\x00")
	if _, rest, ok := bytes.Cut(all, []byte("\n")); ok && offset > 0 {
		all = rest // the first line is incomplete
	}
	lines := logline.WithoutStacks(logline.Lines(all))
	return lines[max(0, len(lines)-most):], nil
}
