    # The CD has the Administrator's password, and each account of this machine can read it.
    Add-Type -TypeDefinition @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

public static class SwdtDrive
{
    [DllImport("kernel32.dll", SetLastError = true, CharSet = CharSet.Unicode)]
    private static extern SafeFileHandle CreateFile(string name, uint access, int share, IntPtr security,
        int disposition, int flags, IntPtr template);
    [DllImport("kernel32.dll", SetLastError = true)]
    private static extern bool DeviceIoControl(SafeFileHandle drive, uint code, IntPtr input, int inputSize,
        IntPtr output, int outputSize, out int returned, IntPtr overlapped);

    public static void Eject(string name)
    {
        // GENERIC_READ, shared, OPEN_EXISTING, IOCTL_STORAGE_EJECT_MEDIA
        using (var drive = CreateFile(name, 0x80000000, 3, IntPtr.Zero, 3, 0, IntPtr.Zero))
        {
            int returned;
            if (drive.IsInvalid || !DeviceIoControl(drive, 0x2D4808, IntPtr.Zero, 0, IntPtr.Zero, 0, out returned, IntPtr.Zero))
            {
                throw new Win32Exception(Marshal.GetLastWin32Error());
            }
        }
    }
}
'@
    [SwdtDrive]::Eject('\\.\' + [IO.Path]::GetPathRoot($swdtMedia).TrimEnd('\'))
