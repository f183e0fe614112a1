//! The interrupt of a VM: a function that Luau calls at the next loop iteration or call, if it is armed.
//!
//! A permanent interrupt doubles the time of hot loops. So it is set only while it is armed, which any thread may do at any time: Luau
//! rereads the place of its interrupt at every safe point. A short call whose steps must be counted uses a second function, which costs a
//! few nanoseconds at each step: it only reports the step to [`Notice`], which arms the interrupt when it is due.
#![expect(unsafe_code, reason = "the place of Luau's interrupt is a C struct")]

use std::{
    ffi::{c_int, c_void},
    marker::PhantomData,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicPtr, Ordering},
    },
};

use mlua::{Lua, VmState, ffi, lua_State};
use parking_lot::Mutex;

use crate::gauge;
#[cfg(doc)]
use crate::gauge::Notice;

/// Arms and disarms the interrupt, on the thread of its VM.
#[derive(Clone, Debug)]
pub struct Interrupt {
    place: Arc<Place>,
    /// Not to be sent: only on the VM's own thread, the VM cannot close in the middle of a function.
    thread: PhantomData<*const ()>,
}

/// Arms the interrupt, on any thread.
#[derive(Clone, Debug)]
pub struct Trigger(Arc<Place>);

/// Where the VM stores its interrupt function, and that function.
#[derive(Debug)]
struct Place {
    /// Null once the VM is closed.
    address: AtomicPtr<*mut ()>,
    function: AtomicPtr<()>,
    /// Locked while another thread uses the place, and while the VM closes.
    in_use: Mutex<()>,
}

impl Interrupt {
    /// Sets the function of this VM's interrupt, in place of the one before. It is not armed.
    ///
    /// # Errors
    /// If the memory of the VM is full.
    pub fn of(
        lua: &Lua,
        function: impl Fn(&Lua) -> mlua::Result<VmState> + 'static,
    ) -> mlua::Result<Self> {
        lua.set_interrupt(function);
        // SAFETY: the state is alive, and its table of callbacks lives as long as the state.
        let place = unsafe { &raw mut (*ffi::lua_callbacks(lua.state())).interrupt };
        // `Option` of a function pointer has the layout of a nullable pointer.
        let place = place.cast::<*mut ()>();
        // SAFETY: aligned, and initialized by `set_interrupt`; no other thread knows the place yet.
        let function = unsafe { AtomicPtr::from_ptr(place) }.load(Ordering::Relaxed);
        let place = Arc::new(Place {
            address: AtomicPtr::new(place),
            function: AtomicPtr::new(function),
            in_use: Mutex::new(()),
        });
        let interrupt = Interrupt { place, thread: PhantomData };
        interrupt.disarm();
        forget_at_the_end(lua, &interrupt.place)?;
        Ok(interrupt)
    }

    /// Makes the VM call the function at its next step. Does nothing once the VM is closed.
    #[inline]
    pub fn arm(&self) {
        // SAFETY: this is the thread of the VM.
        unsafe { self.place.set(self.place.function.load(Ordering::Relaxed)) };
    }

    /// Makes the VM report its steps to what [watches](gauge::watch) it, instead of calling the function. Does nothing once the VM is closed.
    #[inline]
    pub fn count(&self) {
        let on_step: unsafe extern "C-unwind" fn(*mut lua_State, c_int) = on_step;
        // SAFETY: this is the thread of the VM.
        unsafe { self.place.set(on_step as *mut ()) };
    }

    /// Makes the VM continue without calling the function. Does nothing once the VM is closed.
    #[inline]
    pub fn disarm(&self) {
        // SAFETY: this is the thread of the VM.
        unsafe { self.place.set(ptr::null_mut()) };
    }

    /// Returns what arms it from other threads.
    pub fn trigger(&self) -> Trigger {
        Trigger(Arc::clone(&self.place))
    }
}

impl Trigger {
    /// Makes the VM call the function at its next step. Does nothing once the VM is closed.
    pub fn arm(&self) {
        let _in_use = self.0.in_use.lock();
        // SAFETY: under the lock.
        unsafe { self.0.set(self.0.function.load(Ordering::Relaxed)) };
    }
}

impl Place {
    /// Sets the interrupt function of the VM, unless it is closed.
    ///
    /// # Safety
    /// Under the lock, or on the thread of the VM: it must not close meanwhile.
    #[inline]
    unsafe fn set(&self, function: *mut ()) {
        let address = self.address.load(Ordering::Relaxed);
        if !address.is_null() {
            // SAFETY: `forget` has not run yet, so the VM still has its table of callbacks. Luau allows changes at any time.
            unsafe { AtomicPtr::from_ptr(address) }.store(function, Ordering::Relaxed);
        }
    }

    /// Forgets the place in the VM, which is about to be freed.
    fn forget(&self) {
        let _in_use = self.in_use.lock();
        self.address.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// Runs at each step, or step of the collector, while steps are counted.
unsafe extern "C-unwind" fn on_step(state: *mut lua_State, collecting: c_int) {
    if collecting >= 0 {
        return;
    }
    // SAFETY: the state is alive, and this is the thread of its VM.
    unsafe {
        if let Some(notice) = gauge::notice_of(state) {
            notice.step(ffi::lua_totalbytes(state, ALL));
        }
    }
}

/// Memory of all categories.
const ALL: c_int = -1;

/// Forgets the place when the VM closes: a userdata that the VM keeps until then.
fn forget_at_the_end(lua: &Lua, place: &Arc<Place>) -> mlua::Result<()> {
    // SAFETY: the userdata is written right after its memory is allocated, before anything else can fail. The closure owns nothing.
    unsafe {
        lua.exec_raw((), |state| {
            let memory = ffi::lua_newuserdatadtor(state, size_of::<Arc<Place>>(), forget);
            memory.cast::<Arc<Place>>().write(Arc::clone(place));
            ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX);
        })
    }
}

unsafe extern "C" fn forget(_: *mut lua_State, place: *mut c_void) {
    // SAFETY: `forget_at_the_end` has initialized the userdata, and it is freed once.
    let place = unsafe { place.cast::<Arc<Place>>().read() };
    place.forget();
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc, thread};

    use super::{Interrupt, Lua, VmState, gauge};

    /// A VM, and how often its interrupt was called.
    fn interrupted() -> (Lua, Interrupt, Rc<Cell<u32>>) {
        let (lua, count) = (Lua::new(), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&count);
        let interrupt = Interrupt::of(&lua, move |_| {
            counted.set(counted.get() + 1);
            Ok(VmState::Continue)
        });
        (lua, interrupt.expect("memory"), count)
    }

    fn count(lua: &Lua, count: &Cell<u32>) -> u32 {
        lua.load("for _ = 1, 10 do end").exec().expect("it runs");
        count.take()
    }

    #[test]
    fn the_function_is_called_only_while_it_is_armed() {
        let (lua, interrupt, calls) = interrupted();
        assert_eq!(count(&lua, &calls), 0);
        interrupt.arm();
        assert!(count(&lua, &calls) >= 10);
        interrupt.disarm();
        assert_eq!(count(&lua, &calls), 0);
    }

    #[test]
    fn another_thread_arms_it() {
        let (lua, interrupt, calls) = interrupted();
        let trigger = interrupt.trigger();
        thread::spawn(move || trigger.arm()).join().expect("it ends");
        assert!(count(&lua, &calls) >= 10);
    }

    /// Arms an interrupt at the third step.
    struct Steps(Cell<u32>, Interrupt);

    impl gauge::Notice for Steps {
        fn notice(&self, _: Option<usize>, _: bool) {}

        fn step(&self, memory: usize) {
            assert!(memory > 0);
            self.0.set(self.0.get() + 1);
            if self.0.get() == 3 {
                self.1.arm();
            }
        }
    }

    #[test]
    fn steps_are_reported_until_the_interrupt_is_armed() {
        let (lua, interrupt, calls) = interrupted();
        interrupt.count();
        assert_eq!(count(&lua, &calls), 0, "nobody watches");
        let steps = Rc::new(Steps(Cell::new(0), interrupt.clone()));
        gauge::watch(&lua, Rc::clone(&steps));
        let called = count(&lua, &calls);
        assert_eq!(steps.0.get(), 3);
        assert!((7..10).contains(&called), "{called}");
        interrupt.disarm();
        assert_eq!((count(&lua, &calls), steps.0.get()), (0, 3));
    }

    #[test]
    fn once_the_vm_is_closed_nothing_is_left_to_arm() {
        let (lua, interrupt, calls) = interrupted();
        let trigger = interrupt.trigger();
        assert!(!trigger.0.address.load(super::Ordering::Relaxed).is_null());
        drop(lua);
        assert!(trigger.0.address.load(super::Ordering::Relaxed).is_null());
        interrupt.arm();
        interrupt.disarm();
        trigger.arm();
        assert_eq!(Rc::strong_count(&calls), 1);
    }

    #[test]
    fn an_interrupt_outlives_collections() {
        let (lua, interrupt, calls) = interrupted();
        lua.gc_collect().expect("memory");
        interrupt.arm();
        assert!(count(&lua, &calls) >= 10);
    }
}
