// keeper: keeps blocks that a method of a generic type allocates, says so, and waits.
use std::io::{BufRead, Write};

mod shop {
    #[derive(Default)]
    pub struct Cart<T> {
        items: Vec<Vec<T>>,
    }

    impl<T: Default + Clone> Cart<T> {
        #[inline(never)]
        pub fn add(&mut self, count: usize) -> usize {
            self.items.push(vec![T::default(); count]);
            self.items.len()
        }
    }
}

fn main() {
    let mut cart = shop::Cart::<u64>::default();
    let kept: usize = (0..2000).map(|_| cart.add(125)).sum();
    println!("ready");
    std::io::stdout().flush().unwrap();
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    std::process::exit(i32::from(kept == 0));
}
