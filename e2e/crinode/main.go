//go:build windows

// Command crinode is the tests' own witness on the node: what a call of the
// runtime takes there, and what swdt's agents hold.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/swdt-dev/swdt/internal/cri"
)

func main() {
	run := map[string]func() error{"median": median, "agents": agents}
	if len(os.Args) != 2 || run[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: crinode median|agents")
		os.Exit(2)
	}
	if err := run[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, "crinode:", err)
		os.Exit(1)
	}
}

// median prints the microseconds that the middle one of many Version calls took.
func median() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(cri.RawCodec{})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return winio.DialPipeContext(ctx, cri.DefaultPipe)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	var took []time.Duration
	for range 1000 {
		var reply []byte
		begun := time.Now()
		if err := conn.Invoke(ctx, cri.MethodVersion, []byte{}, &reply); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	fmt.Println(took[len(took)/2].Microseconds())
	return nil
}

// agents prints PID, threads and handles of every swdt-agent.exe.
func agents() error {
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
