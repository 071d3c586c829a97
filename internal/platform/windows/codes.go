package windows

import (
	"slices"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// kindOf returns the error of package fault that a code means, and nil if there is none. The code is a Win32 error, or
// an HRESULT of the services that run containers.
func kindOf(code uint32) error {
	for _, m := range meanings() {
		if slices.Contains(m.codes, code) {
			return m.kind
		}
	}
	return nil
}

type meaning struct {
	kind  error
	codes []uint32
}

// meanings lists the codes. If no other source is given, the number and the name of a code are those of winerror.h, on
// learn.microsoft.com as "System Error Codes", and the meaning is that of its text there.
func meanings() []meaning {
	return []meaning{
		{fault.ErrNotExist, []uint32{
			2,    // ERROR_FILE_NOT_FOUND
			3,    // ERROR_PATH_NOT_FOUND
			15,   // ERROR_INVALID_DRIVE
			53,   // ERROR_BAD_NETPATH
			126,  // ERROR_MOD_NOT_FOUND
			1018, // ERROR_KEY_DELETED
			1168, // ERROR_NOT_FOUND; hcsshim's internal/hcs/errors.go reads it as "does not exist" too
		}},
		// HCS has two spellings of each code. computecore.dll and Windows' headers begin it with 0x8, vmcompute.dll with
		// 0xC: hcsshim's internal/hcs/errors.go, and its issue #866 for 0xC0370110.
		{fault.ErrNotExist, []uint32{
			0x8037010E, 0xC037010E, // HCS_E_SYSTEM_NOT_FOUND
			0x80370110, 0xC0370110, // HCS_E_SYSTEM_ALREADY_STOPPED
			0x8037011F, // HCS_E_PROCESS_ALREADY_STOPPED
		}},
		// HNS: "HCN Error Codes" on learn.microsoft.com, virtualization/api/hcn. An object that is deleted while a list
		// of all is read ends with the code of its kind; that of a load balancer is HCN_E_POLICY_NOT_FOUND, since it is a
		// policy list to the service.
		{fault.ErrNotExist, []uint32{
			0x803B0001, // HCN_E_NETWORK_NOT_FOUND
			0x803B0002, // HCN_E_ENDPOINT_NOT_FOUND
			0x803B0008, // HCN_E_POLICY_NOT_FOUND
			0x803B0027, // GCN_E_NETCOMPARTMENT_NOT_FOUND
		}},
		{fault.ErrExist, []uint32{
			80,  // ERROR_FILE_EXISTS
			145, // ERROR_DIR_NOT_EMPTY
			183, // ERROR_ALREADY_EXISTS
		}},
		{fault.ErrPermission, []uint32{
			5,    // ERROR_ACCESS_DENIED
			303,  // ERROR_DELETE_PENDING
			1224, // ERROR_USER_MAPPED_FILE
			1307, // ERROR_INVALID_OWNER
			1314, // ERROR_PRIVILEGE_NOT_HELD
		}},
		{fault.ErrInUse, []uint32{
			32,  // ERROR_SHARING_VIOLATION
			33,  // ERROR_LOCK_VIOLATION
			231, // ERROR_PIPE_BUSY
		}},
		{fault.ErrDiskFull, []uint32{
			39,   // ERROR_HANDLE_DISK_FULL
			112,  // ERROR_DISK_FULL
			1295, // ERROR_DISK_QUOTA_EXCEEDED
		}},
		{fault.ErrIsDirectory, []uint32{336}}, // ERROR_DIRECTORY_NOT_SUPPORTED
		{fault.ErrReadOnly, []uint32{19}},     // ERROR_WRITE_PROTECT
		{fault.ErrNotSupported, []uint32{
			50,  // ERROR_NOT_SUPPORTED
			120, // ERROR_CALL_NOT_IMPLEMENTED
			127, // ERROR_PROC_NOT_FOUND
		}},
		// Programs that Windows refuses to run. CreateFile too returns 225 (wazuh/wazuh#9251). `sc start` prints
		// "StartService FAILED 4551" (gist.github.com/wdormann), and other programs meet 1260 and 4551 at CreateProcess.
		{fault.ErrBlocked, []uint32{
			225,  // ERROR_VIRUS_INFECTED
			226,  // ERROR_VIRUS_DELETED
			786,  // ERROR_ACCESS_DISABLED_NO_SAFER_UI_BY_POLICY
			1260, // ERROR_ACCESS_DISABLED_BY_POLICY: AppLocker, software restriction policies
			4551, // ERROR_SYSTEM_INTEGRITY_POLICY_VIOLATION: App Control (WDAC), Smart App Control
			4556, // ERROR_SYSTEM_INTEGRITY_REPUTATION_MALICIOUS
			4557, // ERROR_SYSTEM_INTEGRITY_REPUTATION_PUA
			4558, // ERROR_SYSTEM_INTEGRITY_REPUTATION_DANGEROUS_EXT
			4559, // ERROR_SYSTEM_INTEGRITY_REPUTATION_OFFLINE
			4580, // ERROR_SYSTEM_INTEGRITY_REPUTATION_UNFRIENDLY_FILE
			4581, // ERROR_SYSTEM_INTEGRITY_REPUTATION_UNATTAINABLE
			4582, // ERROR_SYSTEM_INTEGRITY_REPUTATION_EXPLICIT_DENY_FILE
			4583, // ERROR_SYSTEM_INTEGRITY_WHQL_NOT_SATISFIED
		}},
		// The service control manager: the return values of StartService, ControlService and CreateService.
		{fault.ErrNoService, []uint32{1060}}, // ERROR_SERVICE_DOES_NOT_EXIST
		{fault.ErrServiceExists, []uint32{
			1073, // ERROR_SERVICE_EXISTS
			1078, // ERROR_DUPLICATE_SERVICE_NAME
		}},
		{fault.ErrServiceRunning, []uint32{1056}},  // ERROR_SERVICE_ALREADY_RUNNING
		{fault.ErrServiceStopped, []uint32{1062}},  // ERROR_SERVICE_NOT_ACTIVE
		{fault.ErrServiceDisabled, []uint32{1058}}, // ERROR_SERVICE_DISABLED
		{fault.ErrServiceDeleting, []uint32{1072}}, // ERROR_SERVICE_MARKED_FOR_DELETE
		{fault.ErrDependents, []uint32{1051}},      // ERROR_DEPENDENT_SERVICES_RUNNING
		{fault.ErrShuttingDown, []uint32{1115}},    // ERROR_SHUTDOWN_IN_PROGRESS
		{fault.ErrStartFailed, []uint32{
			1053, // ERROR_SERVICE_REQUEST_TIMEOUT
			1054, // ERROR_SERVICE_NO_THREAD
			1066, // ERROR_SERVICE_SPECIFIC_ERROR
			1067, // ERROR_PROCESS_ABORTED
			1068, // ERROR_SERVICE_DEPENDENCY_FAIL
			1069, // ERROR_SERVICE_LOGON_FAILED
			1075, // ERROR_SERVICE_DEPENDENCY_DELETED
			1077, // ERROR_SERVICE_NEVER_STARTED
		}},
	}
}

// isAboutExecutable reports whether StartService returns the code about the service's executable. The SCM has found
// the service and granted the right to start it, so "not found" and "access denied" are about the executable too.
func isAboutExecutable(code uint32) bool {
	switch code {
	case 2, // ERROR_FILE_NOT_FOUND
		3,   // ERROR_PATH_NOT_FOUND
		5,   // ERROR_ACCESS_DENIED
		32,  // ERROR_SHARING_VIOLATION
		193, // ERROR_BAD_EXE_FORMAT
		216, // ERROR_EXE_MACHINE_TYPE_MISMATCH
		577: // ERROR_INVALID_IMAGE_HASH
		return true
	}
	return false
}
