package process

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object, which holds all processes of an attempt and kills them when its last handle is closed, that is,
// also when the agent dies.
type group struct {
	job windows.Handle

	mu  sync.Mutex
	ids []uint32 // of the steps' console groups
}

func newGroup() (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("SetInformationJobObject", err), windows.CloseHandle(job))
	}
	return &group{job: job}, nil
}

// start starts a program that does nothing before it is in the job.
func (g *group) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := g.admit(uint32(cmd.Process.Pid)); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids = append(g.ids, uint32(cmd.Process.Pid))
	return nil
}

func (g *group) admit(pid uint32) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return os.NewSyscallError("OpenProcess", err)
	}
	err = os.NewSyscallError("AssignProcessToJobObject", windows.AssignProcessToJobObject(g.job, process))
	if err := errors.Join(err, windows.CloseHandle(process)); err != nil {
		return err
	}
	return resume(pid)
}

// resume lets the one thread of a suspended process go.
func resume(pid uint32) error {
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer func() { _ = windows.CloseHandle(threads) }()
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(threads, &entry); err == nil; err = windows.Thread32Next(threads, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return os.NewSyscallError("OpenThread", err)
		}
		_, err = windows.ResumeThread(thread)
		return errors.Join(os.NewSyscallError("ResumeThread", err), windows.CloseHandle(thread))
	}
	return os.NewSyscallError("Thread32Next", err)
}

// soft sends what a press of Ctrl-Break would. Programs without a console do not hear it, and are killed after the grace.
func (g *group) soft() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range g.ids {
		_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, id)
	}
}

func (g *group) kill() { _ = windows.TerminateJobObject(g.job, 1) } // it is tried until the job is empty

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	userTime, kernelTime, periodUserTime, periodKernelTime int64
	pageFaults, total, active, terminated                  uint32
}

const basicAccounting = 1

func (g *group) empty() bool {
	var a accounting
	err := windows.QueryInformationJobObject(g.job, basicAccounting, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	return err == nil && a.active == 0
}

func (g *group) close() { _ = windows.CloseHandle(g.job) }

// endOf has only exit codes here; those that do not fit into a byte all mean a failure.
func endOf(state *os.ProcessState) (code, signal int) {
	if code = state.ExitCode(); code < 0 || code > 255 {
		code = 255
	}
	return code, 0
}
