//! Plain loops compiled once for each instruction set, for the compiler to vectorize.

/// Defines a function that runs its body compiled for the best instruction set of the machine.
///
/// `fn name(arguments) -> result = baseline_body, avx2_body, avx512_body;`: the bodies are calls of `#[inline(always)]`
/// functions, which the compiler then vectorizes for the set in question. On other processors than `x86_64` the
/// baseline body is what runs.
macro_rules! dispatched {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?
        = $baseline:expr, $avx2:expr, $avx512:expr;) => {
        $(#[$meta])*
        // The only unsafe step is the call of a function compiled for instructions that are there.
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $visibility fn $name(kernel: $crate::simd::Kernel, $($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn with_avx2($($argument: $type),*) $(-> $result)? {
                    $avx2
                }
                #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
                #[allow(clippy::too_many_arguments)]
                fn with_avx512($($argument: $type),*) $(-> $result)? {
                    $avx512
                }
                match kernel {
                    $crate::simd::Kernel::Avx512 if $crate::simd::dispatch::has_avx512() => {
                        // SAFETY: the instructions were found on this machine.
                        return unsafe { with_avx512($($argument),*) };
                    }
                    $crate::simd::Kernel::Avx2 | $crate::simd::Kernel::Avx512
                        if $crate::simd::dispatch::has_avx2() =>
                    {
                        // SAFETY: the instructions were found on this machine.
                        return unsafe { with_avx2($($argument),*) };
                    }
                    _ => {}
                }
            }
            let _ = kernel;
            $baseline
        }
    };
}
pub(crate) use dispatched;

#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}
