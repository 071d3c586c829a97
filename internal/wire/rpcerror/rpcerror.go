// Package rpcerror carries the errors of package fault over gRPC: the agent
// converts them to statuses and the node handle converts them back, so that
// errors.Is gives the same result on both sides.
package rpcerror

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const domain = "swdt.dev"

// A kind is one error of package fault or of package context, with its form on the wire.
type kind struct {
	reason string
	err    error
	code   codes.Code
}

func kinds() []kind {
	return []kind{
		{"NOT_EXIST", fault.ErrNotExist, codes.NotFound},
		{"EXIST", fault.ErrExist, codes.AlreadyExists},
		{"PERMISSION", fault.ErrPermission, codes.PermissionDenied},
		{"IN_USE", fault.ErrInUse, codes.FailedPrecondition},
		{"DISK_FULL", fault.ErrDiskFull, codes.ResourceExhausted},
		{"IS_DIRECTORY", fault.ErrIsDirectory, codes.FailedPrecondition},
		{"READ_ONLY", fault.ErrReadOnly, codes.FailedPrecondition},
		{"NO_SERVICE", fault.ErrNoService, codes.NotFound},
		{"SERVICE_EXISTS", fault.ErrServiceExists, codes.AlreadyExists},
		{"SERVICE_RUNNING", fault.ErrServiceRunning, codes.FailedPrecondition},
		{"SERVICE_STOPPED", fault.ErrServiceStopped, codes.FailedPrecondition},
		{"SERVICE_DISABLED", fault.ErrServiceDisabled, codes.FailedPrecondition},
		{"SERVICE_DELETING", fault.ErrServiceDeleting, codes.FailedPrecondition},
		{"DEPENDENTS", fault.ErrDependents, codes.FailedPrecondition},
		{"NOT_DELIVERED", fault.ErrNotDelivered, codes.FailedPrecondition},
		{"SHUTTING_DOWN", fault.ErrShuttingDown, codes.Unavailable},
		{"START_FAILED", fault.ErrStartFailed, codes.Internal},
		{"BLOCKED", fault.ErrBlocked, codes.FailedPrecondition},
		{"NOT_SUPPORTED", fault.ErrNotSupported, codes.Unimplemented},
		{"SILENT", fault.ErrSilent, codes.DeadlineExceeded}, // before DEADLINE, since it may wrap that
		{"DEADLINE", context.DeadlineExceeded, codes.DeadlineExceeded},
		{"CANCELED", context.Canceled, codes.Canceled},
	}
}

const reasonLocked = "LOCKED"

// ToStatus returns the error that a server sends for err. It returns nil for
// nil, and a status unchanged. For any other error it returns a status with
// err's text and, if known, its kind.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	var locked *fault.LockedError
	if errors.As(err, &locked) {
		return with(codes.FailedPrecondition, err, reasonLocked, map[string]string{
			"path": locked.Path, "holder": string(locked.Holder),
		})
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return with(k.code, err, k.reason, nil)
		}
	}
	return status.Error(codes.Unknown, err.Error())
}

func with(code codes.Code, err error, reason string, metadata map[string]string) error {
	s, detailErr := status.New(code, err.Error()).WithDetails(&errdetails.ErrorInfo{
		Domain: domain, Reason: reason, Metadata: metadata,
	})
	if detailErr != nil {
		return status.Error(code, err.Error())
	}
	return s.Err()
}

// FromStatus converts the error that a client received into an error like the one that the server
// had. The result has the same text, and errors.Is and errors.As find the same errors of the
// packages fault and context in it. FromStatus returns err unchanged if err is nil or not a status.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, detail := range s.Details() {
		info, ok := detail.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != domain {
			continue
		}
		if info.GetReason() == reasonLocked {
			return &Error{text: s.Message(), is: &fault.LockedError{
				Path: info.GetMetadata()["path"], Holder: []byte(info.GetMetadata()["holder"]),
			}, status: s}
		}
		for _, k := range kinds() {
			if k.reason == info.GetReason() {
				return &Error{text: s.Message(), is: k.err, status: s}
			}
		}
	}
	switch s.Code() {
	case codes.Canceled:
		return &Error{text: s.Message(), is: context.Canceled, status: s}
	case codes.DeadlineExceeded:
		return &Error{text: s.Message(), is: context.DeadlineExceeded, status: s}
	}
	return &Error{text: s.Message(), status: s}
}

// Error is a failed call to the agent.
type Error struct {
	text   string
	is     error
	status *status.Status
}

func (e *Error) Error() string {
	if e.text == "" {
		return fmt.Sprintf("the agent answered %s", e.status.Code())
	}
	return e.text
}

// Unwrap lets errors.Is and errors.As find the kind of failure.
func (e *Error) Unwrap() error { return e.is }

// GRPCStatus makes the received code available to status.Code.
func (e *Error) GRPCStatus() *status.Status { return e.status }
