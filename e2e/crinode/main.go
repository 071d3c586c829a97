//go:build windows

// Command crinode measures on the node, for the tests and benchmarks, the duration of a call of
// the runtime, and the handles and threads of swdt's agents. It also serves a simulated runtime,
// with more pods than a real runtime could run on a Wine node.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	crisim "github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/cri/measure"
)

func main() {
	run := map[string]func([]string) error{"median": median, "agents": agents, "serve": serve}
	if len(os.Args) < 2 || run[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: crinode median [METHOD] | agents | serve PODS")
		os.Exit(2)
	}
	if err := run[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "crinode:", err)
		os.Exit(1)
	}
}

// median prints the median duration of many calls in microseconds. It calls Version unless the
// arguments name another method.
func median(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return winio.DialPipeContext(ctx, cri.DefaultPipe)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	took, err := measure.Median(ctx, conn, append(args, cri.MethodVersion)[0], 1000)
	if err != nil {
		return err
	}
	fmt.Println(took.Microseconds())
	return nil
}

// serve runs a runtime with the given number of pods until it is ended.
func serve(args []string) error {
	pods := 1
	if len(args) > 0 {
		if _, err := fmt.Sscan(args[0], &pods); err != nil {
			return fmt.Errorf("read the number of pods: %w", err)
		}
	}
	runtime, err := winio.ListenPipe(cri.DefaultPipe, nil)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return crisim.NewServer(crisim.Options{Version: "v1.7.12", Workload: crisim.Example(time.Now(), pods)}).Serve(runtime)
}

// agents prints PID, threads and handles of every swdt-agent.exe.
func agents([]string) error {
	buffer := make([]byte, 1<<20)
	var length uint32
	err := windows.NtQuerySystemInformation(windows.SystemProcessInformation, unsafe.Pointer(&buffer[0]), uint32(len(buffer)), &length)
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for offset := uint32(0); ; {
		if int(offset)+int(unsafe.Sizeof(windows.SYSTEM_PROCESS_INFORMATION{})) > len(buffer) {
			return errors.New("list processes: the list is cut")
		}
		p := (*windows.SYSTEM_PROCESS_INFORMATION)(unsafe.Pointer(&buffer[offset]))
		if strings.EqualFold(p.ImageName.String(), "swdt-agent.exe") {
			fmt.Println(p.UniqueProcessID, p.NumberOfThreads, p.HandleCount)
		}
		if p.NextEntryOffset == 0 {
			return nil
		}
		offset += p.NextEntryOffset
	}
}
