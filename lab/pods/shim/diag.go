//go:build windows

package main

import (
	"context"
	"os"
	"runtime"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// diagStacks answers as hcsshim's diagnostic service does (internal/shimdiag/shimdiag.proto): StacksRequest has no fields, and
// StacksResponse has the text in field 1, as a StringValue has. The goroutines are this program's own ones, unless a test has
// canned others.
func diagStacks(_ context.Context, unmarshal func(any) error) (any, error) {
	if err := unmarshal(&emptypb.Empty{}); err != nil {
		return nil, err
	}
	hang(silent)
	if text, err := os.ReadFile(canned); err == nil {
		return wrapperspb.String(string(text)), nil
	}
	text := make([]byte, 1<<20)
	return wrapperspb.String(string(text[:runtime.Stack(text, true)])), nil
}
