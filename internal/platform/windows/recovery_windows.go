package windows

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

// recovery returns the recovery actions.
func (s service) recovery() (*platform.Recovery, error) {
	buffer, err := s.query2(windows.SERVICE_CONFIG_FAILURE_ACTIONS)
	if err != nil {
		return nil, err
	}
	raw := (*windows.SERVICE_FAILURE_ACTIONS)(unsafe.Pointer(&buffer[0]))
	recovery := &platform.Recovery{Reset: time.Duration(raw.ResetPeriod) * time.Second}
	if raw.ResetPeriod == windows.INFINITE {
		recovery.Reset = 0
	}
	var actions []platform.RecoveryAction
	for _, action := range unsafe.Slice(raw.Actions, raw.ActionsCount) {
		actions = append(actions, platform.RecoveryAction{Kind: platform.RecoveryKind(action.Type),
			After: time.Duration(action.Delay) * time.Millisecond})
	}
	recovery.SayActions(actions)
	recovery.OnErrorExit, err = s.failureFlag()
	return recovery, err
}

// failureFlag reports whether a stop with an error counts as a failure.
func (s service) failureFlag() (bool, error) {
	buffer, err := s.query2(windows.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG)
	if unknownLevel(err) {
		return false, nil
	}
	return err == nil && *(*int32)(unsafe.Pointer(&buffer[0])) != 0, err // SERVICE_FAILURE_ACTIONS_FLAG is one BOOL
}

func (s service) setRecovery(recovery platform.Recovery) error {
	var actions []windows.SC_ACTION
	reboots := false
	for _, action := range recovery.List() {
		actions = append(actions, windows.SC_ACTION{Type: uint32(action.Kind), Delay: milliseconds(action.After)})
		reboots = reboots || action.Kind == platform.RecoverByReboot
	}
	if reboots { // ChangeServiceConfig2 wants it for SC_ACTION_REBOOT
		if err := enablePrivilege("SeShutdownPrivilege"); err != nil {
			return err
		}
	}
	reset := uint32(recovery.Reset / time.Second)
	if reset == 0 {
		reset = windows.INFINITE
	}
	info := windows.SERVICE_FAILURE_ACTIONS{
		ResetPeriod: reset, ActionsCount: uint32(len(actions)), Actions: &actions[0],
	}
	err := windows.ChangeServiceConfig2(s.handle, windows.SERVICE_CONFIG_FAILURE_ACTIONS,
		(*byte)(unsafe.Pointer(&info)))
	if unknownLevel(err) {
		return nil // Wine does not support this part; Config does not report it either
	}
	if err != nil {
		return failed(err, "set the recovery actions of service %s", s.name)
	}
	var flag int32
	if recovery.OnErrorExit {
		flag = 1
	}
	err = windows.ChangeServiceConfig2(s.handle, windows.SERVICE_CONFIG_FAILURE_ACTIONS_FLAG,
		(*byte)(unsafe.Pointer(&flag)))
	if unknownLevel(err) {
		return nil
	}
	return failed(err, "set when the recovery actions of service %s apply", s.name)
}
