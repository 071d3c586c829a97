    # Windows may keep the password of the automatic logon as a secret of LSA, too.
    # LsaStorePrivateData without a value deletes it; 0xC0000034 means that there is none.
    Add-Type -TypeDefinition @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;

public static class SwdtSecret
{
    [StructLayout(LayoutKind.Sequential)]
    private struct Text { public ushort Length; public ushort MaximumLength; public IntPtr Buffer; }

    [StructLayout(LayoutKind.Sequential)]
    private struct Attributes
    {
        public int Length; public IntPtr RootDirectory; public IntPtr ObjectName;
        public int Flags; public IntPtr SecurityDescriptor; public IntPtr SecurityQuality;
    }

    [DllImport("advapi32.dll")]
    private static extern uint LsaOpenPolicy(IntPtr system, ref Attributes attributes, int access, out IntPtr policy);
    [DllImport("advapi32.dll")]
    private static extern uint LsaStorePrivateData(IntPtr policy, ref Text name, IntPtr value);
    [DllImport("advapi32.dll")]
    private static extern uint LsaClose(IntPtr policy);
    [DllImport("advapi32.dll")]
    private static extern int LsaNtStatusToWinError(uint status);

    public static void Delete(string key)
    {
        var attributes = new Attributes();
        attributes.Length = Marshal.SizeOf(typeof(Attributes));
        IntPtr policy;
        Check(LsaOpenPolicy(IntPtr.Zero, ref attributes, 0x20, out policy)); // POLICY_CREATE_SECRET
        var name = new Text();
        name.Length = (ushort)(2 * key.Length);
        name.MaximumLength = (ushort)(2 * key.Length + 2);
        name.Buffer = Marshal.StringToHGlobalUni(key);
        try
        {
            uint status = LsaStorePrivateData(policy, ref name, IntPtr.Zero);
            if (status != 0xC0000034) { Check(status); }
        }
        finally
        {
            Marshal.FreeHGlobal(name.Buffer);
            LsaClose(policy);
        }
    }

    private static void Check(uint status)
    {
        if (status != 0) { throw new Win32Exception(LsaNtStatusToWinError(status)); }
    }
}
'@
    [SwdtSecret]::Delete('DefaultPassword')
