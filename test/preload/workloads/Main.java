import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Threads, maps, direct buffers and the virtual machine's own compression, whose memory comes from malloc. */
public final class Main {
  private static long work(int seed) {
    TreeMap<String, byte[]> map = new TreeMap<>();
    for (int i = 0; i < 20000; i++) {
      map.put("key " + (i * 7919L + seed) % 5003, new byte[i % 300]);
    }
    CRC32 sum = new CRC32();
    byte[] packed = new byte[65536];
    for (int round = 0; round < 200; round++) {
      ByteBuffer direct = ByteBuffer.allocateDirect(10000 + round * 100);
      while (direct.remaining() >= 8) {
        direct.putLong(seed * 31L + direct.position());
      }
      direct.flip();
      Deflater deflater = new Deflater();
      deflater.setInput(direct);
      deflater.finish();
      sum.update(packed, 0, deflater.deflate(packed));
      deflater.end();
    }
    map.forEach((key, value) -> sum.update((key + value.length).getBytes()));
    return sum.getValue();
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4);
    List<Future<Long>> results = new ArrayList<>();
    for (int seed = 0; seed < 8; seed++) {
      int own = seed;
      results.add(pool.submit(() -> work(own)));
    }
    for (Future<Long> result : results) {
      System.out.println(result.get());
    }
    pool.shutdown();
  }
}
